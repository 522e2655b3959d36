"""Named problems in the history of a group, each with its evidence and advice.

One file per finding. To add one: a file with a `FindingRule`, its name in the list below, and in
the tests one history that has the problem and one that does not.
"""

from functools import reduce
from typing import Final

from pyspark.sql import DataFrame

from kohort.pipeline.forensics.findings.crash_loop import CRASH_LOOP
from kohort.pipeline.forensics.findings.eager_cost import EAGER_COST
from kohort.pipeline.forensics.findings.expired_offsets import EXPIRED_OFFSETS
from kohort.pipeline.forensics.findings.finding import Evidence, FindingRule, apply_rule
from kohort.pipeline.forensics.findings.leader_loop import LEADER_LOOP
from kohort.pipeline.forensics.findings.offset_rewinds import OFFSET_REWINDS
from kohort.pipeline.forensics.findings.poll_interval import POLL_INTERVAL
from kohort.pipeline.forensics.findings.rebalance_storm import REBALANCE_STORM
from kohort.pipeline.forensics.findings.rolling_restart import ROLLING_RESTART
from kohort.pipeline.forensics.findings.session_timeout import SESSION_TIMEOUT
from kohort.pipeline.forensics.findings.slow_member import SLOW_MEMBER
from kohort.pipeline.forensics.findings.stuck_group import STUCK_GROUP
from kohort.pipeline.forensics.findings.subscription_mismatch import SUBSCRIPTION_MISMATCH
from kohort.pipeline.forensics.findings.too_many_members import TOO_MANY_MEMBERS
from kohort.pipeline.forensics.findings.unowned_topic import UNOWNED_TOPIC
from kohort.pipeline.forensics.findings.zombie_commits import ZOMBIE_COMMITS

FINDINGS: Final = (
    REBALANCE_STORM,
    SLOW_MEMBER,
    POLL_INTERVAL,
    SESSION_TIMEOUT,
    CRASH_LOOP,
    ROLLING_RESTART,
    LEADER_LOOP,
    EAGER_COST,
    SUBSCRIPTION_MISMATCH,
    UNOWNED_TOPIC,
    ZOMBIE_COMMITS,
    OFFSET_REWINDS,
    EXPIRED_OFFSETS,
    TOO_MANY_MEMBERS,
    STUCK_GROUP,
)


def build(evidence: Evidence) -> DataFrame:
    """The rows of all findings."""
    return reduce(DataFrame.unionByName, (apply_rule(rule, evidence) for rule in FINDINGS))


__all__ = ["FINDINGS", "Evidence", "FindingRule", "apply_rule", "build"]
