// What Apache Kafka's own admin client gets from a broker: one line for each thing it asks for, `call key = value` or `call key ! code text`.
//
//     AdminOracle BOOTSTRAP TOPIC        TOPIC has two partitions and three records, of the times 1000 to 1002, in the first
//
// Names of what it makes begin with `probe-`; the caller asks for the same in the same order and compares the lines.

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;

public class AdminOracle {
    static Admin admin;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("default.api.timeout.ms", "20000");
        settings.put("request.timeout.ms", "10000");
        admin = Admin.create(settings);
        topics(arguments[1]);
        configs(arguments[1]);
        partitions(arguments[1]);
        groups(arguments[1]);
        rest();
        admin.close();
    }

    static void topics(String topic) {
        CreateTopicsResult made = admin.createTopics(List.of(
            new NewTopic("probe-a", 2, (short) 1).configs(Map.of("retention.ms", "5000")),
            new NewTopic(topic, 1, (short) 1),
            new NewTopic("probe/b", 1, (short) 1),
            new NewTopic("probe-none", 0, (short) 1),
            new NewTopic("probe-wide", 1, (short) 7),
            new NewTopic("probe-set", 1, (short) 1).configs(Map.of("no.such", "1")),
            new NewTopic("probe-value", 1, (short) 1).configs(Map.of("retention.ms", "soon")),
            new NewTopic("probe-far", Map.of(0, List.of(77))),
            new NewTopic("probe-gap", Map.of(1, List.of(1))),
            new NewTopic("", 1, (short) 1)));
        each("createTopics", made.values());
        each("createTopics.partitions", Map.of("probe-a", made.numPartitions("probe-a")));
        each("createTopics.validate", admin.createTopics(List.of(new NewTopic("probe-c", 3, (short) 1)), new CreateTopicsOptions().validateOnly(true)).values());
        each("describeTopics", admin.describeTopics(List.of(topic, "not-there", "")).topicNameValues(), AdminOracle::description);
        each("createPartitions", admin.createPartitions(new TreeMap<>(Map.of(
            "probe-a", NewPartitions.increaseTo(3),
            topic, NewPartitions.increaseTo(1),
            "not-there", NewPartitions.increaseTo(3)))).values());
        each("createPartitions.same", admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).values());
        each("createPartitions.assigned", admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4, List.of(List.of(1))))).values());
        each("deleteTopics", admin.deleteTopics(List.of("probe-a", "not-there", "")).topicNameValues());
    }

    static String description(TopicDescription topic) {
        return topic.name() + " " + topic.isInternal() + " " + topic.partitions().stream()
            .map(one -> one.partition() + "/" + one.leader() + "/" + one.replicas() + "/" + one.isr()).collect(Collectors.joining(" "));
    }

    static void configs(String name) {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
        ConfigResource gone = new ConfigResource(ConfigResource.Type.TOPIC, "not-there");
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "probe-group");
        each("describeConfigs", admin.describeConfigs(List.of(topic, gone), new DescribeConfigsOptions().includeSynonyms(true)).values(), AdminOracle::config);
        each("incrementalAlterConfigs", admin.incrementalAlterConfigs(Map.of(
            topic, List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), AlterConfigOp.OpType.SET)),
            gone, List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "1"), AlterConfigOp.OpType.SET)))).values());
        each("incrementalAlterConfigs.append", admin.incrementalAlterConfigs(Map.of(
            topic, List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "1"), AlterConfigOp.OpType.APPEND)))).values());
        each("incrementalAlterConfigs.twice", admin.incrementalAlterConfigs(Map.of(topic, List.of(
            new AlterConfigOp(new ConfigEntry("retention.ms", "1"), AlterConfigOp.OpType.SET),
            new AlterConfigOp(new ConfigEntry("retention.ms", "2"), AlterConfigOp.OpType.SET)))).values());
        each("incrementalAlterConfigs.group", admin.incrementalAlterConfigs(Map.of(
            group, List.of(new AlterConfigOp(new ConfigEntry("consumer.session.timeout.ms", "1"), AlterConfigOp.OpType.SET)))).values());
    }

    static String config(Config config) {
        return config.entries().stream().sorted((a, b) -> a.name().compareTo(b.name())).map(entry -> String.join("/",
            entry.name(), String.valueOf(entry.value()), entry.source().name(), String.valueOf(entry.isSensitive()), String.valueOf(entry.isReadOnly()),
            entry.type().name(), entry.synonyms().stream().map(one -> one.name() + ":" + one.value() + ":" + one.source()).collect(Collectors.joining(",")))
        ).collect(Collectors.joining(" "));
    }

    static void partitions(String topic) {
        TopicPartition first = new TopicPartition(topic, 0), second = new TopicPartition(topic, 1), gone = new TopicPartition("not-there", 0);
        for (OffsetSpec spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.maxTimestamp(), OffsetSpec.forTimestamp(1001),
                OffsetSpec.forTimestamp(9000), OffsetSpec.earliestLocal(), OffsetSpec.latestTiered())) {
            ListOffsetsResult found = admin.listOffsets(Map.of(first, spec, second, spec));
            each("listOffsets", Map.of(first, found.partitionResult(first), second, found.partitionResult(second)),
                one -> one.offset() + " " + one.timestamp() + " " + one.leaderEpoch().map(String::valueOf).orElse("none"));
        }
        ListOffsetsResult found = admin.listOffsets(Map.of(gone, OffsetSpec.latest()), new ListOffsetsOptions().timeoutMs(300));
        each("listOffsets.late", Map.of(gone, found.partitionResult(gone)));
        each("deleteRecords", admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(1), second, RecordsToDelete.beforeOffset(5))).lowWatermarks(),
            one -> String.valueOf(one.lowWatermark()));
        one("electLeaders", () -> new TreeMap<>(byName(admin.electLeaders(ElectionType.PREFERRED, Set.of(first, gone)).partitions().get())).toString());
        one("electLeaders.all", () -> admin.electLeaders(ElectionType.PREFERRED, null).partitions().get().toString());
        each("alterPartitionReassignments", admin.alterPartitionReassignments(Map.of(
            first, Optional.of(new NewPartitionReassignment(List.of(1))),
            second, Optional.of(new NewPartitionReassignment(List.of(1, 77))),
            gone, Optional.of(new NewPartitionReassignment(List.of(1))))).values());
        each("alterPartitionReassignments.cancel", admin.alterPartitionReassignments(Map.of(first, Optional.empty())).values());
        one("listPartitionReassignments", () -> admin.listPartitionReassignments().reassignments().get().toString());
        each("describeLogDirs.late", admin.describeLogDirs(List.of(4711), new DescribeLogDirsOptions().timeoutMs(300)).descriptions());
        each("alterReplicaLogDirs", admin.alterReplicaLogDirs(Map.of(new TopicPartitionReplica(topic, 0, 1), "/no/such/dir")).values());
        DescribeProducersResult producers = admin.describeProducers(List.of(first));
        each("describeProducers", Map.of(first, producers.partitionResult(first)), one -> String.valueOf(one.activeProducers().size()));
    }

    static Map<String, String> byName(Map<TopicPartition, Optional<Throwable>> elected) {
        return elected.entrySet().stream().collect(Collectors.toMap(one -> one.getKey().toString(), one -> one.getValue().map(AdminOracle::problem).orElse("none")));
    }

    static void groups(String topic) {
        TopicPartition first = new TopicPartition(topic, 0), gone = new TopicPartition("not-there", 0);
        AlterConsumerGroupOffsetsResult altered = admin.alterConsumerGroupOffsets("probe-group", Map.of(first, new OffsetAndMetadata(2, "note"), gone, new OffsetAndMetadata(1)));
        each("alterConsumerGroupOffsets", Map.of(first, altered.partitionResult(first), gone, altered.partitionResult(gone)));
        one("listConsumerGroupOffsets", () -> admin.listConsumerGroupOffsets("probe-group").partitionsToOffsetAndMetadata().get().entrySet().stream()
            .map(one -> one.getKey() + " " + one.getValue().offset() + " " + one.getValue().metadata() + " " + one.getValue().leaderEpoch().isPresent()).collect(Collectors.joining(",")));
        one("listConsumerGroupOffsets.none", () -> admin.listConsumerGroupOffsets("nobody").partitionsToOffsetAndMetadata().get().toString());
        each("describeConsumerGroups", admin.describeConsumerGroups(List.of("probe-group", "nobody")).describedGroups(), one -> String.join(" ",
            one.groupId(), String.valueOf(one.isSimpleConsumerGroup()), String.valueOf(one.members().size()), one.partitionAssignor(), one.type().name(), one.groupState().name()));
        each("describeClassicGroups", admin.describeClassicGroups(List.of("probe-group", "nobody")).describedGroups(), one -> String.join(" ",
            one.groupId(), one.protocol(), one.protocolData(), one.state().name()));
        one("listGroups", () -> admin.listGroups().all().get().stream().filter(one -> one.groupId().startsWith("probe-"))
            .map(one -> one.groupId() + " " + one.type().get() + " " + one.protocol() + " " + one.groupState().get()).collect(Collectors.joining(",")));
        DeleteConsumerGroupOffsetsResult deleted = admin.deleteConsumerGroupOffsets("probe-group", Set.of(first, gone));
        each("deleteConsumerGroupOffsets", Map.of(first, deleted.partitionResult(first), gone, deleted.partitionResult(gone)));
        DeleteConsumerGroupOffsetsResult none = admin.deleteConsumerGroupOffsets("nobody", Set.of(first));
        each("deleteConsumerGroupOffsets.none", Map.of(first, none.partitionResult(first)));
        each("deleteConsumerGroups", admin.deleteConsumerGroups(List.of("probe-group", "nobody")).deletedGroups());
        each("describeShareGroups", admin.describeShareGroups(List.of("nobody")).describedGroups());
        each("describeStreamsGroups", admin.describeStreamsGroups(List.of("nobody")).describedGroups());
        one("describeTransactions", () -> admin.describeTransactions(List.of("nobody")).description("nobody").get().toString());
        one("listTransactions", () -> String.valueOf(admin.listTransactions(new ListTransactionsOptions().filterOnTransactionalIdPattern("nobody.*")).all().get().size()));
        one("listTransactions.pattern", () -> String.valueOf(admin.listTransactions(new ListTransactionsOptions().filterOnTransactionalIdPattern("(")).all().get().size()));
    }

    static void rest() {
        AclBinding rule = new AclBinding(new ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL), new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW));
        AclBinding vague = new AclBinding(new ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL), new AccessControlEntry("User:a", "*", AclOperation.UNKNOWN, AclPermissionType.ALLOW));
        one("describeAcls", () -> admin.describeAcls(AclBindingFilter.ANY).values().get().toString());
        one("createAcls", () -> String.valueOf(admin.createAcls(List.of(rule)).values().get(rule).get()));
        one("createAcls.vague", () -> String.valueOf(admin.createAcls(List.of(vague)).values().get(vague).get()));
        one("deleteAcls", () -> String.valueOf(admin.deleteAcls(List.of(AclBindingFilter.ANY)).all().get().size()));
        one("describeClientQuotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().toString());
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of("planet", "mars"));
        one("alterClientQuotas", () -> String.valueOf(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1.0))))).values().get(entity).get()));
        one("describeUserScramCredentials", () -> String.valueOf(admin.describeUserScramCredentials().all().get().size()));
        one("describeUserScramCredentials.none", () -> admin.describeUserScramCredentials(List.of("nobody")).description("nobody").get().toString());
        each("alterUserScramCredentials", admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion("nobody", ScramMechanism.SCRAM_SHA_256))).values());
        one("createDelegationToken", () -> admin.createDelegationToken().delegationToken().get().toString());
        one("describeDelegationToken", () -> admin.describeDelegationToken().delegationTokens().get().toString());
        one("describeFeatures", () -> new TreeMap<>(admin.describeFeatures().featureMetadata().get().supportedFeatures()).entrySet().stream()
            .map(one -> one.getKey() + " " + one.getValue().minVersion() + " " + one.getValue().maxVersion()).collect(Collectors.joining(",")));
        one("updateFeatures", () -> String.valueOf(admin.updateFeatures(Map.of("no.such", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).all().get()));
        one("describeMetadataQuorum", () -> String.valueOf(admin.describeMetadataQuorum().quorumInfo().get().leaderId()));
        one("unregisterBroker", () -> String.valueOf(admin.unregisterBroker(77).all().get()));
        one("listClientMetricsResources", () -> admin.listConfigResources(Set.of(ConfigResource.Type.CLIENT_METRICS), new ListConfigResourcesOptions()).all().get().toString());
    }

    interface Text<V> {
        String of(V value);
    }

    static <K, V> void each(String call, Map<K, KafkaFuture<V>> futures) {
        each(call, futures, String::valueOf);
    }

    static <K, V> void each(String call, Map<K, KafkaFuture<V>> futures, Text<V> text) {
        TreeMap<String, KafkaFuture<V>> sorted = new TreeMap<>();
        futures.forEach((key, future) -> sorted.put(key instanceof ConfigResource resource ? resource.name() : String.valueOf(key), future));
        sorted.forEach((key, future) -> one(call + " " + key, () -> text.of(future.get())));
    }

    static void one(String name, Callable<String> call) {
        try {
            System.out.println(name + " = " + call.call());
        } catch (ExecutionException failure) {
            System.out.println(name + " ! " + problem(failure.getCause()));
        } catch (Exception failure) {
            System.out.println(name + " ! " + problem(failure));
        }
    }

    static String problem(Throwable error) {
        return Errors.forException(error).code() + " " + error.getMessage();
    }
}
