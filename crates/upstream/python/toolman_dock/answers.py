"""Answers: what becomes of a question to a person, as fastmcp has it."""


class AcceptedElicitation:
    """What a person has answered."""

    action = "accept"
    __match_args__ = ("data",)

    def __init__(self, data=None, **_):
        self.data = data


class DeclinedElicitation:
    """A person did not want to answer."""

    action, data = "decline", None

    def __init__(self, **_):
        pass


class CancelledElicitation(DeclinedElicitation):
    """A person has closed the question."""

    action = "cancel"


for _kind in (AcceptedElicitation, DeclinedElicitation, CancelledElicitation):
    _kind.__module__ = "fastmcp.server.elicitation"
