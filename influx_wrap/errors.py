"""The one exception for mistakes a user can make or mend.

Its message is a sentence that names the file, line, view or option, what is
wrong there and what to do about it. The command line prints it without a
traceback and exits with code 2.
"""


class InputError(ValueError):
    """Something the caller handed in cannot be used; the message says what to do."""
