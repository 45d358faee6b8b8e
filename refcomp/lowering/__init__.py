"""From tensor expressions and a schedule to the loop IR."""
