// kafkajs as a process that takes the commands of java/Client.java: "produce TOPIC CODEC FILE" only, since it consumes in groups alone.
const fs = require('fs');
const readline = require('readline');
const { Kafka, CompressionCodecs, CompressionTypes, logLevel } = require('kafkajs');
const lz4 = require('lz4js');
const { ZstdCodec } = require('zstd-codec');

const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy'); // one block, not the frames that Java clients write
CompressionCodecs[CompressionTypes.LZ4] = () => ({ compress: async ({ buffer }) => lz4Frame(buffer) });
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: ({ buffer }) => new Promise((done) => ZstdCodec.run((zstd) => done(Buffer.from(new zstd.Simple().compress(buffer, 3))))),
});

// lz4js announces blocks that depend on each other, which Kafka refuses; of the one block that 4 MB are, none does. The last byte of the
// header is its checksum.
function lz4Frame(buffer) {
  if (buffer.length > 4 << 20) throw new Error('more than one block');
  const frame = Buffer.from(lz4.compress(buffer));
  Buffer.from([0x60, 0x70, 0x73]).copy(frame, 4);
  return frame;
}

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
