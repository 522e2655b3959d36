"""A member among liars: brokers that answer anything to anything, at any time, or not at all.

Whatever they say, the member keeps its own promises; and once everyone is honest again, it gets
where it was going.
"""

from collections.abc import Mapping

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kohort.client.assignors import COOPERATIVE_STICKY, RANGE
from kohort.client.member import effects, events
from kohort.client.member.effects import Change, Effect
from kohort.client.member.events import Event, Loss, Position, Question, RequestNumber
from kohort.client.member.leading import write_assignment
from kohort.client.member.machine import Member, MemberSettings, MemberState
from kohort.client.rebalances import Ending
from kohort.client.topic_partition import TopicPartition
from kohort.types import (
    BrokerId,
    ErrorCode,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
)
from kohort.wire.api import (
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k14_sync_group,
)
from tests.client.spelling import subscription
from tests.client.translating import commit_response, refusal_of

TOPICS = ("t1", "t2", "t3")
SPACE = [TopicPartition(Topic(t), Partition(n)) for t in TOPICS for n in range(2)]

topics = st.frozensets(st.sampled_from([Topic(each) for each in TOPICS]), max_size=2)
partitions = st.frozensets(st.sampled_from(SPACE), max_size=4)
positions = st.dictionaries(
    st.sampled_from(SPACE), st.integers(-1, 9).map(lambda n: Position(offset=Offset(n))), max_size=3
)
errors = st.sampled_from(
    [
        *ErrorCode,
        # The ones that mean something to a member, so that they are drawn often enough.
        *[ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION] * 10,
        *[ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR] * 10,
        *[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.FENCED_INSTANCE_ID] * 5,
        *[ErrorCode.MEMBER_ID_REQUIRED] * 5,
    ]
)
member_ids = st.sampled_from([MemberId(each) for each in ("", "m1", "m2")])
metadata = st.sampled_from(
    [b"", b"?", subscription("t1"), subscription("t1,t2+t1:0,1@3"), subscription("-")]
)
lies = st.builds(
    k11_join_group.JoinGroupResponse,
    error_code=st.just(0),
    generation_id=st.integers(-1, 3),
    protocol_type=st.sampled_from([None, "consumer", "consumer", "connect"]),
    protocol_name=st.sampled_from([None, "range", "cooperative-sticky", "none"]),
    leader=member_ids,
    skip_assignment=st.booleans(),
    member_id=member_ids,
    members=st.lists(
        st.builds(
            k11_join_group.JoinGroupResponseMember,
            member_id=member_ids,
            group_instance_id=st.none(),
            metadata=metadata,
        ),
        max_size=3,
    ).map(tuple),
)
assignments = st.one_of(st.sampled_from([b"", b"?"]), partitions.map(write_assignment))

Body = object


def honest(body: Body, topic_names: frozenset[Topic]) -> object:
    """What a good coordinator says to its only member."""
    match body:
        case k10_find_coordinator.FindCoordinatorRequest():
            named = k10_find_coordinator.Coordinator(
                key=body.coordinator_keys[0], node_id=BrokerId(1), host="b1", port=1, error_code=0
            )
            return k10_find_coordinator.FindCoordinatorResponse(coordinators=(named,))
        case k11_join_group.JoinGroupRequest():
            (first, *_) = body.protocols
            return k11_join_group.JoinGroupResponse(
                error_code=0,
                generation_id=Generation(77),
                protocol_type="consumer",
                protocol_name=first.name,
                leader=MemberId("boss"),
                member_id=body.member_id or MemberId("honest"),
            )
        case k14_sync_group.SyncGroupRequest():
            given = [at for at in SPACE if at.topic in topic_names]
            return k14_sync_group.SyncGroupResponse(
                error_code=0, assignment=write_assignment(given)
            )
        case _:
            return refusal_of(body, ErrorCode.NONE)


class AmongLiars(RuleBasedStateMachine):
    @initialize(
        is_cooperative=st.booleans(), is_static=st.booleans(), enable_auto_commit=st.booleans()
    )
    def begin(self, *, is_cooperative: bool, is_static: bool, enable_auto_commit: bool) -> None:
        self.settings = MemberSettings(
            group_id=GroupId("g"),
            assignors=(COOPERATIVE_STICKY,) if is_cooperative else (RANGE, COOPERATIVE_STICKY),
            instance_id=InstanceId("i") if is_static else None,
            enable_auto_commit=enable_auto_commit,
        )
        self.member = Member(self.settings, lambda: 0.5)
        self.now = Millis(0)
        self.topics: frozenset[Topic] | None = None
        self.open: dict[RequestNumber, Body] = {}
        self.closed: dict[RequestNumber, Body] = {}
        self.attempt: RequestNumber | None = None
        self.call: effects.Call | None = None
        self.must_tell = False
        self.questions: dict[Question, bool] = {}
        self.asked = 0
        self.held: frozenset[TopicPartition] = frozenset()
        self.standing = (Generation(-1), MemberId(""))
        self.gone: set[tuple[Generation, MemberId]] = set()
        self.is_ended = False

    # The member, and what it must keep to

    def feed(self, event: Event) -> None:
        before = self.standing
        if isinstance(event, events.CallbackReturned) and self.call is not None:
            if self.call.change is not Change.ASSIGNED:
                self.held -= self.call.partitions
            self.call = None
        said = self.member.handle(event, self.now)
        self.standing = (self.member.generation, self.member.member_id)
        for effect in said:
            self._check(effect, event, is_new=self.standing != before)
        if self.standing != before:
            self.gone.add(before)
            self.gone.discard(self.standing)
        if self.member.state not in (MemberState.JOINING, MemberState.SYNCING):
            self.attempt = None
        assert self.member.held == self.held, "held partitions change only through calls"

    def _check(self, effect: Effect, event: Event, *, is_new: bool) -> None:
        assert not self.is_ended or isinstance(effect, effects.Committed | effects.CommittedTold)
        match effect:
            case effects.Send():
                self._check_send(effect, event, is_new=is_new)
            case effects.Call():
                assert self.call is None, "one call at a time"
                self.call = effect
                if effect.change is Change.ASSIGNED:
                    assert not effect.partitions & self.held
                    self.held |= effect.partitions
                else:
                    assert effect.partitions
                    assert effect.partitions <= self.held
            case effects.TellPositions():
                assert self.settings.enable_auto_commit
                assert effect.leaving <= self.held
                self.must_tell = True
            case effects.Committed() | effects.CommittedTold():
                assert self.questions.pop(effect.question), "each question has one answer"
            case effects.Told():
                told = effect.rebalance
                assert told.began_at <= told.ended_at == self.now
                spans = [told.join_ms, told.sync_ms, told.callback_ms, told.waited_ms]
                assert min(spans) >= 0
                assert sum(spans) <= told.ended_at - told.began_at
                assert told.ending is not Ending.STABLE or told.generation >= 0
            case effects.Ended():
                self.is_ended = True
            case _:
                pass

    def _check_send(self, send: effects.Send, event: Event, *, is_new: bool) -> None:
        assert send.number not in self.open | self.closed
        self.open[send.number] = send.body
        match send.body:
            case k11_join_group.JoinGroupRequest() | k14_sync_group.SyncGroupRequest():
                number = getattr(event, "number", None)
                is_free = self.attempt is None or self.attempt == number or is_new
                assert is_free, "one join or sync at a time"
                self.attempt = send.number
            case k12_heartbeat.HeartbeatRequest():
                assert (send.body.generation_id, send.body.member_id) not in self.gone
            case k08_offset_commit.OffsetCommitRequest():
                generation = send.body.generation_id_or_member_epoch
                standing = (generation, send.body.member_id)
                assert standing == (-1, "") or standing not in self.gone
            case _:
                pass

    @invariant()
    def it_will_be_woken_while_it_is_joined(self) -> None:
        resting = (MemberState.UNJOINED, MemberState.LEAVING, MemberState.ENDED)
        if self.member.generation >= 0 and self.member.state not in resting:
            is_joining = self.member.state in (MemberState.PREPARING, MemberState.JOINING)
            assert self.member.deadline() is not None or (is_joining and self.open)

    # The program

    @rule(wanted=topics)
    def subscribe(self, wanted: frozenset[Topic]) -> None:
        self.topics = wanted
        self.feed(events.Subscribed(topics=wanted))

    @rule()
    def unsubscribe(self) -> None:
        self.topics = None
        self.feed(events.Unsubscribed())

    @rule()
    def poll(self) -> None:
        self.feed(events.Polled())

    @precondition(lambda self: self.call is not None)
    @rule()
    def return_from_listener(self) -> None:
        self.feed(events.CallbackReturned())

    @precondition(lambda self: self.must_tell)
    @rule(told=positions)
    def tell_positions(self, told: Mapping[TopicPartition, Position]) -> None:
        self.must_tell = False
        moved = {at: each for at, each in told.items() if each.offset >= 0}
        self.feed(events.PositionsTold(positions=moved))

    @rule(told=positions)
    def commit(self, told: Mapping[TopicPartition, Position]) -> None:
        self.feed(events.CommitAsked(question=self._ask(), positions=told))

    @rule(asked=partitions)
    def ask_what_is_committed(self, asked: frozenset[TopicPartition]) -> None:
        self.feed(events.CommittedAsked(question=self._ask(), partitions=asked))

    def _ask(self) -> Question:
        self.asked += 1
        self.questions[Question(self.asked)] = True
        return Question(self.asked)

    @precondition(lambda self: self.questions)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        question = data.draw(st.sampled_from(sorted(self.questions)))
        del self.questions[question]
        self.feed(events.Withdrawn(question=question))

    @rule()
    def ask_to_rejoin(self) -> None:
        self.feed(events.RejoinAsked(reason="on a whim"))

    @rule(counts=st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 3)))
    def see(self, counts: Mapping[str, int]) -> None:
        seen = {Topic(topic): count for topic, count in counts.items()}
        self.feed(events.TopicsSeen(partitions=seen))

    # The liars

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def tell_the_truth(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        self._answer(number, honest(self.open[number], self.topics or frozenset()))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), error=errors, member_id=member_ids)
    def refuse(self, data: st.DataObject, error: ErrorCode, member_id: MemberId) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        self._answer(number, refusal_of(self.open[number], error, member_id))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def lie(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        body = self._lie(self.open[number], data)
        self._answer(number, body)

    def _lie(self, asked: Body, data: st.DataObject) -> object:
        match asked:
            case k11_join_group.JoinGroupRequest():
                return data.draw(lies)
            case k14_sync_group.SyncGroupRequest():
                assignment = data.draw(assignments)
                return k14_sync_group.SyncGroupResponse(error_code=0, assignment=assignment)
            case k08_offset_commit.OffsetCommitRequest():
                return commit_response(data.draw(st.dictionaries(st.sampled_from(SPACE), errors)))
            case k09_offset_fetch.OffsetFetchRequest():
                return k09_offset_fetch.OffsetFetchResponse(groups=())
            case k10_find_coordinator.FindCoordinatorRequest():
                return k10_find_coordinator.FindCoordinatorResponse(coordinators=())
            case _:
                return refusal_of(asked, 9_999)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), loss=st.sampled_from(Loss))
    def lose(self, data: st.DataObject, loss: Loss) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        self.closed[number] = self.open.pop(number)
        self.feed(events.Unanswered(number=number, loss=loss))

    @precondition(lambda self: self.closed)
    @rule(data=st.data())
    def say_it_again(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.closed)))
        body = honest(self.closed[number], self.topics or frozenset())
        self.feed(events.Answered(number=number, body=body))

    def _answer(self, number: RequestNumber, body: object) -> None:
        self.closed[number] = self.open.pop(number)
        self.feed(events.Answered(number=number, body=body))

    # Time

    @rule(span=st.sampled_from([1, 100, 1_000, 3_000, 45_000, 300_000]))
    def wait(self, span: int) -> None:
        until = Millis(self.now + span)
        while (due := self.member.deadline()) is not None and due <= until:
            self.now = max(self.now, due)
            self.feed(events.Woken())
            after = self.member.deadline()
            assert after is None or after > self.now, "it would never sleep again"
        self.now = until

    # The end

    def teardown(self) -> None:
        """Honest people get it where it was going: into the group, and then out of it."""
        if not hasattr(self, "member"):
            return
        self._live_honestly()
        if self.topics is not None:
            assert self.member.state is MemberState.STABLE
            assert self.held == {at for at in SPACE if at.topic in self.topics}
        self.feed(events.Closed())
        self._live_honestly()
        assert self.is_ended
        assert not self.questions
        assert self.member.deadline() is None

    def _live_honestly(self) -> None:
        for _ in range(60):
            self.feed(events.Polled())
            if self.must_tell:
                self.must_tell = False
                self.feed(events.PositionsTold(positions={}))
            if self.call is not None:
                self.feed(events.CallbackReturned())
            self.feed(events.TopicsSeen(partitions={Topic(topic): 2 for topic in TOPICS}))
            for number in sorted(self.open):
                self._answer(number, honest(self.open[number], self.topics or frozenset()))
            self.wait(200)


TestAmongLiars = AmongLiars.TestCase
TestAmongLiars.settings = settings(stateful_step_count=60)
