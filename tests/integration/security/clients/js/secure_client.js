// kafkajs over SASL_SSL, with the commands of java/SecureClient.java.
const fs = require('fs');
const readline = require('readline');
const { Kafka, logLevel } = require('kafkajs');

const WAIT_MS = 30000;
const logins = {};

class SecureClient {
  constructor([bootstrap, authority, topic, mechanism, username, password, token]) {
    const byPassword = { mechanism: mechanism.toLowerCase(), username, password };
    const byToken = { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: token }) };
    this.topic = topic;
    this.kafka = new Kafka({
      clientId: 'kafkajs',
      brokers: [bootstrap],
      ssl: { ca: [fs.readFileSync(authority, 'utf8')] },
      sasl: mechanism === 'OAUTHBEARER' ? byToken : byPassword,
      reauthenticationThreshold: 500, // of a session that lasts 1,500 ms; Kafka refuses to renew one within its first second
      logLevel: logLevel.NOTHING,
      retry: { retries: 3, initialRetryTime: 50 },
    });
  }

  async send() {
    if (!this.producer) {
      this.producer = this.kafka.producer();
      await this.producer.connect();
    }
    await this.producer.send({ topic: this.topic, acks: -1, messages: [{ partition: 0, value: 'let in' }] });
    return '';
  }

  async read() {
    this.consumer = this.kafka.consumer({ groupId: `secured-${this.topic}-${Math.random()}` });
    await this.consumer.connect();
    await this.consumer.subscribe({ topic: this.topic, fromBeginning: true });
    return new Promise((done, fail) => {
      const timer = setTimeout(() => fail(new Error('no answer')), WAIT_MS);
      const eachMessage = async ({ message }) => {
        clearTimeout(timer);
        done(message.value.toString());
      };
      this.consumer.run({ eachMessage }).catch(fail);
    });
  }

  async close() {
    if (this.consumer) await this.consumer.disconnect();
    if (this.producer) await this.producer.disconnect();
    return '';
  }
}

async function obey([command, number, ...words]) {
  if (command === 'open') {
    logins[number] = new SecureClient(words);
    return '';
  }
  return logins[number][command]();
}

// The error that kafkajs gave up for, not the one that says that it did.
function text(problem) {
  const cause = problem.name === 'KafkaJSNumberOfRetriesExceeded' && problem.cause ? problem.cause : problem;
  return `${cause.name}: ${cause.message}`.replace(/\s+/g, ' ');
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const answer = await obey(line.split('\t')).then((value) => `ok\t${value}`, (problem) => `error\t${text(problem)}`);
    process.stdout.write(`${answer}\n`);
  }
  process.exit(0);
}

main();
