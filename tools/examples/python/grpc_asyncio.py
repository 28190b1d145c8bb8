#!/usr/bin/env python3
"""The stubs of tools/python with grpc.aio, without its client: `grpc_asyncio.py 127.0.0.1:7400 KEY-FILE`.

Makes users side by side, lists them, and deletes them again.
"""
import asyncio
import sys
from pathlib import Path

import grpc

from postern.v1 import users_pb2


async def main():
    address, key_file = sys.argv[1:]
    metadata = [("authorization", f"Bearer {Path(key_file).read_text().strip()}")]
    async with grpc.aio.insecure_channel(address) as channel:
        def method(name):
            response = getattr(users_pb2, f"Users{name}Response")
            call = channel.unary_unary(
                f"/postern.v1.Users/{name}", lambda message: message.SerializeToString(), response.FromString)
            return lambda request: call(request, metadata=metadata, timeout=10)

        create, list_users, delete = method("Create"), method("List"), method("Delete")
        made = await asyncio.gather(*(
            create(users_pb2.UsersCreateRequest(uid=f"async-{number}")) for number in range(16)))
        print(f"made {len(made)}")
        listed = await list_users(users_pb2.UsersListRequest(page_size=100))
        print(f"listed {sum(user.uid.startswith('async-') for user in listed.users)}")
        await asyncio.gather(*(delete(users_pb2.UsersDeleteRequest(uid=one.user.uid)) for one in made))
        try:
            await delete(users_pb2.UsersDeleteRequest(uid="async-0"))
        except grpc.aio.AioRpcError as failure:
            print(f"deleted, and {failure.code().name} for once more")


asyncio.run(main())
