"""Random streams depend on the seed and on their names, and on nothing else."""

from uuid import UUID

from kohort.virtual_time.rng import RandomStreams, random_topic_id, random_uuid


def test_a_stream_does_not_depend_on_draws_from_another() -> None:
    expected = RandomStreams(7).named("node", 1).random()
    streams = RandomStreams(7)

    streams.named("other").random()

    assert streams.named("node", 1).random() == expected
    assert RandomStreams(8).named("node", 1).random() != expected


def test_seeds_keep_their_meaning() -> None:
    assert RandomStreams(7).named("node", 1).randrange(10**6) == 399_806
    assert RandomStreams(7).split("group", 1).named("a").randrange(10**6) == 708_483


def test_uuids_are_of_version_4() -> None:
    assert UUID(random_uuid(RandomStreams(7).named("ids"))).version == 4


def test_topic_ids_do_not_begin_with_a_dash_in_base64() -> None:
    stream = RandomStreams(7).named("ids")

    assert all(random_topic_id(stream)[0] < 0x80 for _ in range(100))
