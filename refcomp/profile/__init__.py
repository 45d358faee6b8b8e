"""What a kernel that ran emulated would take on a card, why, and what to change in its schedule.

`refcomp.emulator.observers.counting` counts; this room tells what the counts mean. Counts are
exact; what is called an estimate follows from public figures of a card, and knows nothing of
latencies, of caches beyond each segment of memory read once, and of what the driver does.

Reading order: cards.py (the figures), bound.py (the estimate), listing.py (which lines of schedule,
loop IR, LLVM IR and machine code belong together), facts.py (accesses by kind, and their loops),
advice.py (what to change), report.py (all of it), tables.py (its rows), text.py (tables for a
terminal), page.py (a page for a browser).
"""

from refcomp.profile.cards import CARDS, Card
from refcomp.profile.page import write_page
from refcomp.profile.report import ProfileReport, report_of
from refcomp.profile.text import report_to_text, reports_to_text

__all__ = [
    "CARDS",
    "Card",
    "ProfileReport",
    "report_of",
    "report_to_text",
    "reports_to_text",
    "write_page",
]
