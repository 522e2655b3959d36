"""The errors of the pipeline. Each message says what to do."""


class PipelineError(Exception):
    """The base class of all errors that the pipeline raises for its user."""


class BadSourceOption(PipelineError, ValueError):
    """An option of a source or a sink that is missing, unknown, or contradicts another."""


class BadCheckpoint(PipelineError):
    """A checkpoint that another query or another source wrote."""


class BrokerUnavailable(PipelineError):
    """No broker can be reached, or a broker answers with an error."""


class DataLost(PipelineError):
    """Records were deleted before they were read, and `failOnDataLoss` is true."""


class MalformedBatch(PipelineError):
    """A batch cannot be decoded, and `skipMalformedBatches` is false."""


class TopicNotFound(PipelineError):
    """A topic or a partition that the query names does not exist."""


class JoinTimeout(PipelineError):
    """The group assigned nothing to the query within `joinTimeoutMs`."""


class FetchTimeout(PipelineError):
    """A broker returned no record within `fetchTimeoutMs`, although its log has some."""
