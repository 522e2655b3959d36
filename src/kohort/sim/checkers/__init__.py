"""What must be true, whatever happens: one rule, or a few about one thing, in each file.

A checker is told what members, producers and the wire were seen to do. It never looks inside the
code it judges, the replay aside, and it says what is wrong by raising Violation.
"""
