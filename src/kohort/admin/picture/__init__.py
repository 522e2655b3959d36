"""The live picture of a cluster's groups: what they are doing now, and what befell them lately.

    with open_cluster("localhost:9092") as cluster, follow(cluster) as following:
        seen = 0
        while True:
            seen = following.wait_for_change(seen, timeout_s=1.0)
            with following.look() as picture:
                view = picture.find_group(GroupId("billing"), now_ms())

`Picture` is pure: a fold of the records of `__consumer_offsets`, the events of `__kohort_events`
and polled answers into what is known of every group. It answers with values (`values.py`) that
stay as they are when it goes on. `following` is its face: a thread that reads both topics and asks
about groups and log ends every couple of seconds, through outages, and a lock.

- `follow(cluster) -> Following`, which is closed by `close()` or by its `with` block.
- `following.look()` gives the picture for as long as its `with` block lasts; take values out of it
  and leave, since the picture stands still meanwhile.
- `following.wait_for_change(seen, timeout_s)` gives the picture's version as soon as it is not
  `seen`, or `seen` once the time is up. Any number of threads may wait.
- `following.health()` tells whether the cluster answers, and how far the past is read.
- `picture.find_group(id, now_ms)` is a `GroupView` or None: state, generation, members and what
  they hold, offsets and lag, rebalances (the newest last, one that is under way too), and stretches
  of ownership. `picture.find_rebalance(id, key)`, `picture.list_groups(wish, now_ms)` and
  `picture.overview(now_ms)` are the other questions.

On a cluster without `__kohort_events` a rebalance is the difference of two generations: its
`trigger`, `culprit` and phases are None, for nobody can know them there.
"""

from kohort.admin.picture.following import Following, Health, follow, now_ms
from kohort.admin.picture.picture import Picture
from kohort.admin.picture.values import (
    GroupPage,
    GroupRow,
    GroupView,
    GroupWish,
    Member,
    Need,
    Overview,
    Party,
    Reading,
    Rebalance,
    Standing,
    Stretch,
)

__all__ = [
    "Following",
    "GroupPage",
    "GroupRow",
    "GroupView",
    "GroupWish",
    "Health",
    "Member",
    "Need",
    "Overview",
    "Party",
    "Picture",
    "Reading",
    "Rebalance",
    "Standing",
    "Stretch",
    "follow",
    "now_ms",
]
