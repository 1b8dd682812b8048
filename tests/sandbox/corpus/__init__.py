"""Hostile programs, and what has to come of each of them.

`rows` lists what must be covered, in the words of the threat model. The programs stand in modules
by theme: `resources` (too much of something), `escape` (what is none of their business), `forgery`
(a verdict that was not earned), `leftovers` (something for the next test), `text` (bytes that
upset a reader) and `functions` (forged answers to tests that call a function). `stage` runs them
and looks at the place afterwards; `honest` holds programs that none of this may touch.
"""
