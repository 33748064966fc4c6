"""What operators do in a browser: settings and log levels of brokers, ACLs, users, quotas, transactions, telemetry."""

from __future__ import annotations

import confluent_kafka

from tests.integration.console.person import Person
from tests.integration.console.world import ALICE, LIVE_GROUP, ORDERS, PAYMENTS, TRANSACTION, World


def test_settings_and_log_levels_of_a_broker_are_changed(admin: Person) -> None:
    browser = admin.open("/brokers")
    admin.see("3 alive", "controller")
    browser.press("Broker 2")
    admin.see("Log directories", "online")
    browser.press("Settings")
    browser.fill("Search in names, values and documentation", "log.cleaner.backoff")
    browser.wait(lambda: browser.count("#settings tbody tr") == 1, "the search")
    browser.press("Change log.cleaner.backoff.ms")
    browser.fill("Value", "14000")
    browser.press("Set")
    admin.see("log.cleaner.backoff.ms", "14000")
    assert any("log.cleaner.backoff.ms" in text for text in browser.texts("#settings tr.changed"))

    browser.press("Log levels")
    browser.fill("Search in names", "state.change.logger")
    browser.wait(lambda: browser.count("#loggers tbody tr") == 1, "the search")
    browser.choose("Level of state.change.logger", "ERROR")
    browser.press("Set")
    admin.see("The logger state.change.logger of broker 2 has the level ERROR.")


def test_acls_are_added_asked_and_deleted(admin: Person) -> None:
    browser = admin.open("/access")
    admin.see(f"User:{ALICE}")
    browser.fill("Principal", "bert")
    browser.choose("Permission", "may not, whatever else allows it")
    browser.choose("Operation", "Write")
    browser.fill("Name", ORDERS)
    browser.press("Add")
    admin.see("Added the ACL")
    browser.press("What may a user do?")
    browser.fill("User", "User:bert")
    browser.press("Ask")
    browser.wait(lambda: browser.texts("main tbody td .badge.bad") == ["Write"], "the denial")
    browser.press("Who may do this?")
    browser.choose("Operation", "Write")
    browser.fill("Name", ORDERS)
    browser.press("Ask")
    answers = browser.wait(lambda: browser.texts("main tbody tr"), "the answers")
    assert any(f"User:{ALICE}" in one and "may not" not in one for one in answers)
    assert any("User:bert" in one and "may not" in one for one in answers)
    admin.open("/access?q=bert")
    browser.press("Delete")
    browser.confirm()
    admin.see("Deleted the ACL")
    assert "bert" not in browser.text("main table")


def test_a_user_is_made_and_can_log_in(admin: Person, world: World) -> None:
    browser = admin.open("/access/users")
    for label, text in (("User", "carla"), ("Password", "first"), ("Password again", "second"), ("Iterations", "4096")):
        browser.fill(label, text)
    browser.press("Set the password")
    browser.wait(lambda: browser.count("main .notice.bad"), "the refusal")
    browser.messages()
    for label in ("Password", "Password again"):
        browser.fill(label, "first")
    browser.press("Set the password")
    admin.see("The user carla has a new password")
    browser.forget()
    Person(browser, world.writing).log_in("carla", "first")
    browser.wait(lambda: "carla · log out" in browser.text("header"), "the name")
    browser.messages()
    assert "first" not in world.audit_log.read_text()


def test_quotas_are_set_explained_and_removed(admin: Person) -> None:
    browser = admin.open("/quotas")
    admin.see(f"user {ALICE}", "1 MB/s")
    browser.run("document.querySelector('#new-title').parentElement.querySelector('[name=user]').value = 'dora'")
    browser.fill("Fetch, bytes/s", "250000")
    browser.press("Set")
    admin.see("are set", "user dora", "250 kB/s")
    admin.open("/quotas?user=dora&client=anything")
    admin.see("250 kB/s", "no bound")
    admin.open("/quotas?q=dora")
    browser.press("Remove")
    browser.confirm()
    admin.see("is removed")


def test_an_open_transaction_is_shown_and_aborted(admin: Person, world: World) -> None:
    producer = confluent_kafka.Producer({**world.librdkafka, "transactional.id": "forgotten", "transaction.timeout.ms": 600_000})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(PAYMENTS, b"never seen")
    producer.flush()
    browser = admin.open("/transactions")
    admin.see(TRANSACTION, "Ongoing")
    admin.open(f"/topics/{PAYMENTS}/producers")
    admin.see("2 open transactions", "forgotten")
    admin.open("/transactions?q=forgotten")
    browser.press("forgotten")
    admin.see(PAYMENTS)
    browser.press("Abort the transaction")
    browser.confirm()
    admin.see("The transaction of forgotten is aborted", "Nothing is open")
    admin.open("/transactions/hanging?minutes=0&search=1")
    admin.see("No transaction hangs")


def test_clients_push_metrics_by_a_subscription(admin: Person) -> None:
    browser = admin.open("/telemetry")
    admin.see("producers", "/metrics")
    browser.fill("Name", "readers")
    browser.fill("Metrics", "org.apache.kafka.consumer.")
    browser.fill("Clients", "nonsense")
    browser.press("Add")
    admin.see("nonsense selects no clients")
    browser.messages()
    browser.fill("Clients", "client_id=shipping.*")
    browser.press("Add")
    admin.see("Clients push by the subscription readers.")
    admin.open("/telemetry?edit=readers")
    assert browser.value("Clients") == "client_id=shipping.*"
    admin.open("/telemetry")
    browser.run("[...document.querySelectorAll('[data-confirm]')].find((one) => one.dataset.confirm.includes('readers')).click()")
    browser.confirm()
    admin.see("The subscription readers is deleted.")


def test_the_overview_tells_how_the_cluster_is(admin: Person) -> None:
    browser = admin.open("/")
    admin.see("Groups furthest behind", LIVE_GROUP)
    # From the brokers' metrics, read as the user who looks; a rate needs two samples.
    browser.wait(lambda: "Bytes out" in browser.texts("main .facts dt"), "bytes out")
    assert "3" in browser.texts("main .facts dd")
    assert browser.count("main .chart") == 2
