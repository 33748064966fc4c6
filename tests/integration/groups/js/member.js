// kafkajs as a member of a consumer group, with the words of java/Member.java: BOOTSTRAP GROUP TOPIC STRATEGY INSTANCE.
// It knows one assignor, its own round-robin, which others do not have by that name: under another's name it votes with them.
const { Kafka, logLevel, PartitionAssigners } = require('kafkajs');

const [bootstrap, groupId, topic, strategy] = process.argv.slice(2);
const named = (options) => ({ ...PartitionAssigners.roundRobin(options), name: strategy });
const assigner = strategy === 'RoundRobinAssigner' ? PartitionAssigners.roundRobin : named;
const kafka = new Kafka({ clientId: 'kafkajs', brokers: [bootstrap], logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({ groupId, partitionAssigners: [assigner], sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTimeInMs: 200 });

const tell = (...words) => process.stdout.write(`${words.join(' ')}\n`);
const hold = (partitions) => tell('hold', process.hrtime.bigint(), partitions.join(','));

async function eachBatch({ batch }) {
  tell('read', batch.partition, batch.firstOffset(), batch.lastOffset()); // the client commits once this returns
}

async function stop() {
  hold([]);
  await consumer.stop();
  await consumer.disconnect();
  tell('closed');
  process.exit(0);
}

async function main() {
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => hold(payload.memberAssignment[topic] || []));
  consumer.on(consumer.events.REBALANCING, () => hold([]));
  consumer.on(consumer.events.CRASH, ({ payload }) => tell('fail', payload.error.message));
  process.stdin.on('end', stop).resume();
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({ eachBatch });
}

main().catch((problem) => tell('fail', problem.message));
