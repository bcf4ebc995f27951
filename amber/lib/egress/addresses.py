"""Judge which IP addresses a tenant may make Amber call: public ones that hide no other.

The tables are IANA's special-purpose registries, written out, because `ipaddress.is_global`
differs between patch releases of Python:
https://www.iana.org/assignments/iana-ipv4-special-registry/
https://www.iana.org/assignments/iana-ipv6-special-registry/
Transition addresses are judged by the IPv4 address inside them: mapped (RFC 4291), 6to4 (3056),
NAT64's well-known prefix (6052), Teredo (4380: server and client). IPv4-compatible addresses and
local-use NAT64 (8215) are never public. Pure; resolves nothing.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

IPAddress = IPv4Address | IPv6Address

_REFUSED_V4: Final = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT, and Alibaba's metadata
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's metadata, at a public address
        "169.254.0.0/16",  # link-local, and the metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, and Oracle's metadata
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_GLOBAL_UNICAST_V6: Final = IPv6Network("2000::/3")
_REFUSED_V6: Final = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments: Teredo is judged before
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_UNIQUE_LOCAL: Final = IPv6Network("fc00::/7")
# Never meant by an operator who allows a name: a cloud's metadata, or everybody.
_NEVER_V4: Final = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "192.0.0.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_METADATA_V6: Final = IPv6Address("fd00:ec2::254")


def plain_address(text: str) -> IPAddress | None:
    """Return the address that this spells, mapped ones as IPv4; None if it is none, or has a
    zone."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return None
        return address.ipv4_mapped or address
    return address


def is_public(address: IPAddress) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in block for block in _REFUSED_V4)
    inside = _ipv4_inside(address)
    if inside:
        return all(is_public(each) for each in inside)
    if address not in _GLOBAL_UNICAST_V6:
        return False
    return not any(address in block for block in _REFUSED_V6)


def is_allowable(address: IPAddress) -> bool:
    """Return whether a name that the operator allowed may lead here.

    True for private addresses too, but not for metadata, link-local, multicast, reserved or
    unspecified ones.
    """
    if isinstance(address, IPv4Address):
        return not any(address in block for block in _NEVER_V4)
    inside = _ipv4_inside(address)
    if inside:
        return all(is_allowable(each) for each in inside)
    if address.is_loopback or (address in _UNIQUE_LOCAL and address != _METADATA_V6):
        return True
    return is_public(address)


def _ipv4_inside(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses a packet to this one would reach; empty for native IPv6."""
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    return ()
