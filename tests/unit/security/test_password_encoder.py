from __future__ import annotations

import pytest

from barnabas.config_def import InvalidConfig
from barnabas.security.password_encoder import DEFAULT_CIPHER, GCM, PasswordEncoder

PASSWORD = "gehéim-😀"
# Written by Apache Kafka 3.9.1 with the secret `the-secret`.
BY_KAFKA = [
    (
        "initializationVector:HERkT3sDpR2RtBxtPpj4Og==,keyLength:128,salt:s+5pdhdGMAV/Q0xZRAEAihu+T1DA98m50uSWLypUFePUdESFReZxXds"
        "Witxq2KE6GE6i+CUD+zBZqV+nBV3pOjDgtd0ilVdVcDHsbwF0bkUnrTqVjbQGedjHBawzYcBeiv1chsRxylwwJD6m9zoaGvlCQLlRdxP1L1uit+tyZwXv4hv"
        "lRhmoyEedIRa03WtuaVq0eIuazURDuvq9CKh0fM8/FAkQ5TUrYwfDrMO3MQDc695YYkTD3kfyETvKOe9vjiBwo2fWzPDDFJmhk8JNWXCZt6ZGLSNufhCwDR8"
        "Ts2VIUmehf4rEWBXDu9kYTP4/GKltgbmfJY3B7L64zT3AfA==,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5"
        "Padding,iterations:4096,passwordLength:9,encryptedPassword:d++EQKvi5hUU4CfjscrbBQ=="
    ),
    (
        "initializationVector:2o2uAGg0li2U03fuJ19ETw==,keyLength:256,salt:adC3vCGG52EEmgvzpfojnbZy3da+zuIKKBVJQqwtJTWaRBdMmP40BAd"
        "hg1YeNsV+/jDnena6dlTz+eDabHfFJ40D3fxYKe0Np0/3JffcCaKwWa39X8WiYizHuWFhmctk1ezLA035jkaIvoJlTkGFZpH+qznFXJXsotVVx4w9Y0eNKOg"
        "4IH26RVYgU0LN9nQrr3cX8plvw/b85/rSUTpbGFQGnprlMjab7r5XjgxgqdIR258WlIk8YB1Ht7KhUqeLgRl1KjBZe38rR4exwxQBpPI1niP3indB0bZG6H+"
        "1rld4+tq8Q81MVUYt6mFMjbbj/mG9mwe5pCM7po0rIhOD1w==,keyFactoryAlgorithm:PBKDF2WithHmacSHA1,cipherAlgorithm:AES/CBC/PKCS5Pa"
        "dding,iterations:4096,passwordLength:9,encryptedPassword:+5kyjvhd/lkEuCMdX320xQ=="
    ),
    (
        "initializationVector:NAEXAamzPYR0mp0a,keyLength:128,salt:g3nmwP7gQeonXyeZbFt0kutB9Y1ssEUH4CD1ygP+/JtkISQVVl1jZPj4TzPMUDf"
        "q/y7t0wgYMN+RKGWUBbwaIYtEJmRDdfWwooyG30qEn5Ej0fFr6RAj5Z4QYnWqSiT5EkMqh+5WsBMQwY6SMgW6h4lispLjB1RvJ/3x2xm5T9osPB/uzYV1ShJ"
        "vDYhwZjQFswC+cBvSKmj/ijV39fdBCI0UdnG8cFZSOnv7X1thCmNtTM6k3ezqoRnEZO72hsjjROrt7I+6UD7Mc0ZP5h7hX0flfKOTnwABYVVXr1ECTzqKoVp"
        "fkn+I6KmFdgGLomnK51DzjJOyH+SQIsW/c0E/Cw==,keyFactoryAlgorithm:PBKDF2WithHmacSHA256,cipherAlgorithm:AES/GCM/NoPadding,aut"
        "henticationTagLength:128,iterations:4096,passwordLength:9,encryptedPassword:xVSgPq5tx/iH+ZJRchwMqxRGQr+nMAeDkwggMA=="
    ),
]


@pytest.mark.parametrize("text", BY_KAFKA, ids=["default", "SHA1, 256 bits", "GCM"])
def test_a_password_that_apache_kafka_encoded_is_decoded(text: str) -> None:
    assert PasswordEncoder("the-secret").decode(text) == PASSWORD


@pytest.mark.parametrize("cipher", [DEFAULT_CIPHER, GCM])
@pytest.mark.parametrize("key_factory", [None, "PBKDF2WithHmacSHA1", "PBKDF2WithHmacSHA256"])
def test_what_is_encoded_is_decoded_by_an_encoder_with_other_settings(cipher: str, key_factory: str | None) -> None:
    text = PasswordEncoder("the-secret", key_factory, cipher, 256, 1024).encode(PASSWORD)
    assert PasswordEncoder("the-secret").decode(text) == PASSWORD
    assert PASSWORD not in text


def test_the_fields_are_those_of_kafka_in_its_order() -> None:
    for text, cipher in ((BY_KAFKA[0], DEFAULT_CIPHER), (BY_KAFKA[2], GCM)):
        names = [part.split(":")[0] for part in PasswordEncoder("s", cipher=cipher, iterations=1024).encode("x").split(",")]
        assert names == [part.split(":")[0] for part in text.split(",")]


def test_the_same_password_is_encoded_differently_each_time() -> None:
    encoder = PasswordEncoder("s", iterations=1024)
    assert encoder.encode("x") != encoder.encode("x")


@pytest.mark.parametrize("text", [*BY_KAFKA, "", "secret", "a:b", BY_KAFKA[0].replace("iterations:4096", "iterations:2000000000"),
                                  BY_KAFKA[0].replace("passwordLength:9", "passwordLength:8"), BY_KAFKA[0].replace("AES/CBC", "DES/CBC"),
                                  BY_KAFKA[0].replace("HERkT3sDpR2RtBxtPpj4Og==", "AAAA")])  # fmt: skip
def test_a_password_that_cannot_be_decoded_is_an_error_without_the_text(text: str) -> None:
    with pytest.raises(InvalidConfig) as raised:
        PasswordEncoder("another" if text in BY_KAFKA else "the-secret").decode(text)
    assert str(raised.value) == "Password could not be decoded: it was encoded with another password.encoder.secret"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"cipher": "DES/CBC/PKCS5Padding"}, "password.encoder.cipher.algorithm=DES/CBC/PKCS5Padding is not supported"),
        ({"key_factory": "PBKDF2WithMD5"}, "password.encoder.keyfactory.algorithm=PBKDF2WithMD5 is not supported"),
        ({"key_length": 64}, "password.encoder.key.length=64 is not supported: use one of 128, 192, 256"),
    ],
)
def test_an_unknown_algorithm_names_its_setting(settings: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidConfig, match=text):
        PasswordEncoder("s", **settings)  # type: ignore[arg-type]
