// Runs Kafka's Java clients: one JSON request per line on standard input, one JSON response per
// line on standard output. A request names the client ("on"), the operation ("do") and a number
// ("id"), which the response repeats. Each client has its own thread and handles its requests in
// order. At the end of the input the process exits without closing the clients, as in a crash.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, Thing> THINGS = new ConcurrentHashMap<>();
    private static final Map<String, ExecutorService> THREADS = new ConcurrentHashMap<>();
    private static final PrintStream OUT =
        new PrintStream(System.out, true, StandardCharsets.UTF_8);

    /** A consumer, a producer or an admin client. */
    interface Thing {
        Object answer(String what, JsonNode asked) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            THREADS.computeIfAbsent(
                    asked.get("on").asText(),
                    name -> Executors.newSingleThreadExecutor(
                            task -> {
                                Thread thread = new Thread(task, name);
                                thread.setDaemon(true);
                                return thread;
                            }))
                .submit(() -> answer(asked));
        }
        Runtime.getRuntime().halt(0);
    }

    private static void answer(JsonNode asked) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", asked.get("id").asLong());
        try {
            answer.put("ok", act(asked));
        } catch (Throwable thrown) {
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            answer.put("error", Errors.forException(cause).name());
            answer.put("kind", cause.getClass().getSimpleName());
            answer.put("message", String.valueOf(cause.getMessage()));
        }
        try {
            String line = JSON.writeValueAsString(answer);
            synchronized (OUT) {
                OUT.println(line);
            }
        } catch (Exception unspeakable) {
            unspeakable.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private static Object act(JsonNode asked) throws Exception {
        String name = asked.get("on").asText();
        String what = asked.get("do").asText();
        switch (what) {
            case "consumer" -> THINGS.put(name, new Member(properties(asked)));
            case "producer" -> THINGS.put(name, new Writer(properties(asked)));
            case "admin" -> THINGS.put(name, new Administrator(properties(asked)));
            default -> {
                Thing thing = THINGS.get(name);
                if (thing == null) {
                    throw new IllegalStateException("there is no " + name);
                }
                Object answer = thing.answer(what, asked);
                if (what.equals("close")) {
                    THINGS.remove(name);
                    THREADS.remove(name).shutdown();
                }
                return answer;
            }
        }
        return null;
    }

    // Consumers

    private static final class Member implements Thing, ConsumerRebalanceListener {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final List<Object> listenerCalls = new ArrayList<>();

        Member(Properties properties) {
            consumer = new KafkaConsumer<>(
                    properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            listenerCalls.add(List.of("assigned", tps(partitions)));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            listenerCalls.add(List.of("revoked", tps(partitions)));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            listenerCalls.add(List.of("lost", tps(partitions)));
        }

        @Override
        public Object answer(String what, JsonNode asked) {
            switch (what) {
                case "subscribe" -> consumer.subscribe(texts(asked.get("topics")), this);
                case "subscribe-pattern" ->
                    consumer.subscribe(Pattern.compile(asked.get("pattern").asText()), this);
                case "assign" -> consumer.assign(partitions(asked.get("tps")));
                case "commit" -> commit(asked.get("offsets"));
                case "seek" ->
                    consumer.seek(partition(asked.get("tp")), asked.get("offset").asLong());
                case "pause" -> consumer.pause(partitions(asked.get("tps")));
                case "resume" -> consumer.resume(partitions(asked.get("tps")));
                case "close" -> consumer.close();
                default -> {
                    return look(what, asked);
                }
            }
            return null;
        }

        private Object look(String what, JsonNode asked) {
            return switch (what) {
                case "poll" -> poll(asked.get("ms").asLong());
                case "assignment" -> tps(consumer.assignment());
                case "listener-calls" -> List.copyOf(listenerCalls);
                case "committed" -> {
                    TopicPartition tp = partition(asked.get("tp"));
                    yield committed(consumer.committed(Set.of(tp)).get(tp));
                }
                case "position" -> consumer.position(partition(asked.get("tp")));
                case "span" -> {
                    TopicPartition tp = partition(asked.get("tp"));
                    yield List.of(
                        consumer.beginningOffsets(Set.of(tp)).get(tp),
                        consumer.endOffsets(Set.of(tp)).get(tp));
                }
                case "offset-for-time" -> {
                    TopicPartition tp = partition(asked.get("tp"));
                    var found = consumer.offsetsForTimes(Map.of(tp, asked.get("ms").asLong()));
                    yield found.get(tp) == null ? null : found.get(tp).offset();
                }
                default -> throw new IllegalArgumentException("a consumer cannot " + what);
            };
        }

        private void commit(JsonNode offsets) {
            if (offsets == null || offsets.isNull()) {
                consumer.commitSync();
            } else {
                consumer.commitSync(offsets(offsets));
            }
        }

        private List<Object> poll(long ms) {
            List<Object> seen = new ArrayList<>();
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(ms))) {
                List<Object> headers = new ArrayList<>();
                for (Header header : record.headers()) {
                    headers.add(List.of(header.key(), encode(header.value())));
                }
                Map<String, Object> one = new LinkedHashMap<>();
                one.put("topic", record.topic());
                one.put("partition", record.partition());
                one.put("offset", record.offset());
                one.put("key", encode(record.key()));
                one.put("value", encode(record.value()));
                one.put("headers", headers);
                one.put("timestamp_ms", record.timestamp());
                seen.add(one);
            }
            return seen;
        }
    }

    // Producers

    private static final class Writer implements Thing {
        private final KafkaProducer<byte[], byte[]> producer;

        Writer(Properties properties) {
            producer = new KafkaProducer<>(
                    properties, new ByteArraySerializer(), new ByteArraySerializer());
        }

        @Override
        public Object answer(String what, JsonNode asked) throws Exception {
            switch (what) {
                case "produce" -> {
                    return produce(asked.get("topic").asText(), asked.get("records"));
                }
                case "init-transactions" -> producer.initTransactions();
                case "begin" -> producer.beginTransaction();
                case "commit-transaction" -> producer.commitTransaction();
                case "abort-transaction" -> producer.abortTransaction();
                case "close" -> producer.close();
                default -> throw new IllegalArgumentException("a producer cannot " + what);
            }
            return null;
        }

        private List<Long> produce(String topic, JsonNode records) throws Exception {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode each : records) {
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : each.get("headers")) {
                    headers.add(new RecordHeader(header.get(0).asText(), decode(header.get(1))));
                }
                JsonNode time = each.get("timestamp_ms");
                sent.add(producer.send(new ProducerRecord<>(
                        topic,
                        each.get("partition").asInt(),
                        time.isNull() ? null : time.asLong(),
                        decode(each.get("key")),
                        decode(each.get("value")),
                        headers)));
            }
            producer.flush();
            List<Long> offsets = new ArrayList<>();
            for (Future<RecordMetadata> one : sent) {
                offsets.add(one.get().offset());
            }
            return offsets;
        }
    }

    // Admin clients

    private static final class Administrator implements Thing {
        private final Admin admin;

        Administrator(Properties properties) {
            admin = Admin.create(properties);
        }

        @Override
        public Object answer(String what, JsonNode asked) throws Exception {
            if (what.equals("close")) {
                admin.close();
                return null;
            }
            return asked.has("group") ? group(what, asked) : cluster(what, asked);
        }

        private Object cluster(String what, JsonNode asked) throws Exception {
            String topic = asked.path("topic").asText();
            return switch (what) {
                case "create-topic" -> {
                    int partitions = asked.get("partitions").asInt();
                    NewTopic wanted = new NewTopic(topic, partitions, (short) 1)
                        .configs(settings(asked.get("settings")));
                    yield admin.createTopics(List.of(wanted)).all().get();
                }
                case "grow-topic" -> {
                    var wanted = NewPartitions.increaseTo(asked.get("partitions").asInt());
                    yield admin.createPartitions(Map.of(topic, wanted)).all().get();
                }
                case "delete-topic" -> admin.deleteTopics(List.of(topic)).all().get();
                case "topics" -> admin.listTopics().names().get();
                case "partitions" -> admin.describeTopics(List.of(topic)).allTopicNames().get()
                    .get(topic).partitions().size();
                case "settings" -> {
                    ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
                    yield admin.describeConfigs(List.of(resource)).values().get(resource).get()
                        .entries().stream()
                        .collect(Collectors.toMap(ConfigEntry::name, ConfigEntry::value));
                }
                case "set" -> admin.incrementalAlterConfigs(Map.of(
                        new ConfigResource(ConfigResource.Type.TOPIC, topic),
                        List.of(alteration(asked)))).all().get();
                case "groups" -> admin.listGroups().all().get().stream().collect(
                        Collectors.toMap(GroupListing::groupId,
                            each -> each.groupState().map(Object::toString).orElse("")));
                case "delete-records" -> {
                    TopicPartition tp = partition(asked.get("tp"));
                    var before = RecordsToDelete.beforeOffset(asked.get("offset").asLong());
                    yield admin.deleteRecords(Map.of(tp, before)).lowWatermarks().get(tp)
                        .get().lowWatermark();
                }
                case "latest-by-time" -> {
                    TopicPartition tp = partition(asked.get("tp"));
                    yield admin.listOffsets(Map.of(tp, OffsetSpec.maxTimestamp()))
                        .partitionResult(tp).get().offset();
                }
                case "brokers" -> admin.describeCluster().nodes().get().stream()
                    .map(node -> node.host() + ":" + node.port()).toList();
                default -> throw new IllegalArgumentException("an administrator cannot " + what);
            };
        }

        private static AlterConfigOp alteration(JsonNode asked) {
            String name = asked.get("name").asText();
            JsonNode value = asked.get("value");
            return new AlterConfigOp(
                new ConfigEntry(name, value.isNull() ? "" : value.asText()),
                value.isNull() ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET);
        }

        private Object group(String what, JsonNode asked) throws Exception {
            String group = asked.get("group").asText();
            return switch (what) {
                case "describe" -> {
                    var found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
                    yield Map.of(
                        "state", found.groupState().toString(),
                        "assignor", found.partitionAssignor(),
                        "members", found.members().stream().map(Administrator::member).toList());
                }
                case "delete" -> admin.deleteConsumerGroups(List.of(group)).all().get();
                case "offsets" -> {
                    List<Object> found = new ArrayList<>();
                    admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                        .forEach((tp, committed) ->
                            found.add(List.of(tp(tp), committed(committed))));
                    yield found;
                }
                case "alter-offsets" -> admin.alterConsumerGroupOffsets(
                    group, offsets(asked.get("offsets"))).all().get();
                case "delete-offsets" -> admin.deleteConsumerGroupOffsets(
                    group, Set.copyOf(partitions(asked.get("tps")))).all().get();
                case "remove-instance" -> admin.removeMembersFromConsumerGroup(
                    group,
                    new RemoveMembersFromConsumerGroupOptions(
                        Set.of(new MemberToRemove(asked.get("instance").asText())))).all().get();
                case "remove-all" -> admin.removeMembersFromConsumerGroup(
                    group, new RemoveMembersFromConsumerGroupOptions()).all().get();
                default -> throw new IllegalArgumentException("an administrator cannot " + what);
            };
        }

        private static Map<String, Object> member(MemberDescription described) {
            Map<String, Object> member = new HashMap<>();
            member.put("id", described.consumerId());
            member.put("instance", described.groupInstanceId().orElse(null));
            member.put("client", described.clientId());
            member.put("tps", tps(described.assignment().topicPartitions()));
            return member;
        }
    }

    // JSON conversion

    private static Properties properties(JsonNode asked) {
        Properties properties = new Properties();
        properties.putAll(settings(asked.get("config")));
        return properties;
    }

    private static Map<String, String> settings(JsonNode node) {
        return node.properties().stream()
            .collect(Collectors.toMap(Map.Entry::getKey, field -> field.getValue().asText()));
    }

    private static List<String> texts(JsonNode node) {
        return StreamSupport.stream(node.spliterator(), false).map(JsonNode::asText).toList();
    }

    private static TopicPartition partition(JsonNode tp) {
        return new TopicPartition(tp.get(0).asText(), tp.get(1).asInt());
    }

    private static List<TopicPartition> partitions(JsonNode tps) {
        return StreamSupport.stream(tps.spliterator(), false).map(Driver::partition).toList();
    }

    private static List<Object> tp(TopicPartition partition) {
        return List.of(partition.topic(), partition.partition());
    }

    private static List<List<Object>> tps(Collection<TopicPartition> partitions) {
        return partitions.stream().map(Driver::tp).toList();
    }

    /** From [[tp, [offset, metadata, leader epoch or null]], ...]. */
    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode pairs) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode pair : pairs) {
            JsonNode committed = pair.get(1);
            Optional<Integer> epoch =
                committed.get(2).isNull() ? Optional.empty() : Optional.of(committed.get(2).asInt());
            offsets.put(
                partition(pair.get(0)),
                new OffsetAndMetadata(committed.get(0).asLong(), epoch, committed.get(1).asText()));
        }
        return offsets;
    }

    private static List<Object> committed(OffsetAndMetadata found) {
        if (found == null) {
            return null;
        }
        List<Object> committed = new ArrayList<>();
        committed.add(found.offset());
        committed.add(found.metadata());
        committed.add(found.leaderEpoch().orElse(null));
        return committed;
    }

    private static String encode(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }

    private static byte[] decode(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }
}
