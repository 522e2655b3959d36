"""What can go wrong in the pipeline; each says what to do about it."""


class PipelineError(Exception):
    """Something that whoever runs the pipeline should hear of."""


class BadSourceOption(PipelineError, ValueError):
    """An option of a source or a sink that is missing, unknown, or contradicts another."""


class BadCheckpoint(PipelineError):
    """A checkpoint that is not this query's."""


class DataLost(PipelineError):
    """Records that were to be read are no more, and `failOnDataLoss` is true."""


class NoSuchTopic(PipelineError):
    """A topic that was named does not exist."""


class NotJoined(PipelineError):
    """The group did not let the query in, in time."""


class NothingCame(PipelineError):
    """A broker has records, by its own word, and does not give them."""
