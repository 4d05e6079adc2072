"""What a person, not the program, did wrong."""


class UserError(Exception):
    """A mistake that one sentence explains: `main` prints it and returns 2, without a traceback."""
