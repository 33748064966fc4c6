"""The groups of a shard by their id. The broker's memory account includes a group while it is in the table."""

from __future__ import annotations

from barnabas.coordinator.group.group import Group
from barnabas.coordinator.memory_account import MemoryAccount


class GroupTable(dict[str, Group]):
    def __init__(self, account: MemoryAccount) -> None:
        super().__init__()
        self._account = account

    def __setitem__(self, group_id: str, group: Group) -> None:
        replaced = self.get(group_id)
        if replaced is not None:
            replaced.leave_account()
        super().__setitem__(group_id, group)
        group.enter_account(self._account)

    def __delitem__(self, group_id: str) -> None:
        group = self[group_id]
        super().__delitem__(group_id)
        group.leave_account()

    def leave_account(self) -> None:
        """The shard is unloaded: its groups leave the account, even if something still refers to them."""
        for group in self.values():
            group.leave_account()
