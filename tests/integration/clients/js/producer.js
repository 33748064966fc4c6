// kafkajs as a process that takes the commands of java/Client.java: "produce TOPIC CODEC FILE" only, since it consumes in groups alone.
const fs = require('fs');
const readline = require('readline');
const { Kafka, CompressionTypes, logLevel } = require('kafkajs');

const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP };
const kafka = new Kafka({ clientId: 'kafkajs', brokers: [process.argv[2]], logLevel: logLevel.ERROR });
const bytes = (text) => (text === '-' ? null : Buffer.from(text.slice(1), 'base64'));

// Repeated header names are lists here, so that the order of different names with repeats between them is the client's to choose.
function headersOf(text) {
  const headers = {};
  for (const [name, value] of text.split(',').filter(Boolean).map((pair) => pair.split(':').map(bytes))) {
    headers[name] = name in headers ? [].concat(headers[name], [value]) : value;
  }
  return headers;
}

function parse(line) {
  const [, timestamp, key, value, headers] = line.split(' ');
  return { partition: 0, timestamp, key: bytes(key), value: bytes(value), headers: headersOf(headers) };
}

async function obey(producer, [command, topic, codec, file]) {
  if (command !== 'produce') throw new Error(`no such command: ${command}`);
  const messages = fs.readFileSync(file, 'utf8').split('\n').filter(Boolean).map(parse);
  await producer.send({ topic, acks: -1, compression: CODECS[codec], messages });
}

async function main() {
  const producer = kafka.producer({ idempotent: true });
  await producer.connect();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const answer = await obey(producer, line.split('\t')).then(() => 'ok', (problem) => `error\t${problem.message}`);
    process.stdout.write(`${answer}\n`);
  }
  await producer.disconnect();
}

main();
