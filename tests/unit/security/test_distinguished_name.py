"""Each text is what Java 17's X500Principal.getName returned for the same encoded name."""

from __future__ import annotations

import pytest

from barnabas.security.distinguished_name import name_text


@pytest.mark.parametrize(
    ("encoded", "text"),
    [
        (
            "310b3009060355040613025553310b300906035504080c024d44310f300d06035504070c0646756c746f6e310d300b060355040a0c046d796370"
            "310c300a060355040b0c03534d45310d300b06035504030c0444756b65",
            "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US",
        ),
        ("311e301c06035504030c1520612c623d632b643c653e6623673b6822695c6a20", 'CN=\\ a\\,b\\=c\\+d\\<e\\>f\\#g\\;h\\"i\\\\j\\ '),
        ("310c300a06035504030c03202020", "CN=\\ \\ \\ "),
        ("310e300c06035504030c05236c656164", "CN=\\#lead"),
        ("3116301406035504030c0d5a6fc3ab20e2988320f09f9880", "CN=Zoë ☃ 😀"),
        ("3114301206092a864886f70d01090116056140622e63310a300806035504030c0178", "CN=x,1.2.840.113549.1.9.1=#16056140622e63"),
        (
            "3125300806035504030c01783008060355040b0c017a300f060a0992268993f22c6401010c0179310a3008060355040a0c016f",
            "O=o,CN=x+OU=z+UID=y",
        ),
        ("310c300a06035504030c03610d62310d300b060355040a0c040d710d20", "O=\\\rq\\\r\\ ,CN=a\rb"),
        ("310e300c06035504030c056e756c0078", "CN=nul\\00x"),
        ("310f300d06035504031e060062006d0070", "CN=\\00b\\00m\\00p"),
        ("310c300a06035504031403743631", "CN=t61"),
        ("310c300a06035504031603696135", "CN=ia5"),
        ("310c300a060355042d0303000102", "2.5.4.45=#0303000102"),
        ("310c300a060355040312036e756d", "CN=#12036e756d"),
        ("310c300a06038837030c036f776e", "2.999.3=#0c036f776e"),
        ("", ""),
    ],
)
def test_the_text_of_a_name_is_javas(encoded: str, text: str) -> None:
    assert name_text(bytes.fromhex(encoded)) == text


def test_a_name_that_is_cut_off_is_refused() -> None:
    encoded = bytes.fromhex("310c300a06035504030c03202020")
    for size in range(1, len(encoded)):
        with pytest.raises(ValueError, match=r"cut off|values to unpack"):
            name_text(encoded[:size])
