"""Loop IR to loop IR: one file per pass, whose function has the file's name."""
