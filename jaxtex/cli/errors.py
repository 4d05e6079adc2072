"""What a person, not the program, did wrong, and how it is put."""


class UserError(Exception):
    """A mistake that one sentence explains: `main` prints it and returns 2, without a traceback."""


def one_line(error: BaseException) -> str:
    """The class and message of an exception on one line, of sane length."""
    message = " ".join(str(error).split()).rstrip(".")[:160]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
