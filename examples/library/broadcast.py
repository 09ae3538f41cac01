#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brings a file from member 0 to all others, in Python:

    broadcast.py SELF HOST[:PORT],HOST[:PORT],... SECRET-FILE FILE
"""
import argparse
import mmap
import os
import pathlib
import sys

import prepost


def send(group, path):
    """The file is sent from where the kernel has it."""
    if os.path.getsize(path) == 0:  # which cannot be mapped
        group.broadcast(b"")
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        group.broadcast(mapped)


def receive(group, path):
    """The file appears whole or not at all."""
    message = group.broadcast()
    part = path.with_name(path.name + ".part")
    part.write_bytes(message)
    part.replace(path)


def main():
    parser = argparse.ArgumentParser(description="Brings a file from member 0 to all others.")
    parser.add_argument("self", type=int, help="this member's number")
    parser.add_argument("members", help="addresses of all members, by commas")
    parser.add_argument("secret", type=pathlib.Path, help="file with what all members know")
    parser.add_argument("file", type=pathlib.Path, help="to send at member 0, to write elsewhere")
    parser.add_argument(
        "--timeout", type=float, default=30, help="seconds to wait for members that are not there"
    )
    arguments = parser.parse_args()
    try:
        with prepost.Session(
            self=arguments.self,
            members=arguments.members.split(","),
            secret=arguments.secret.read_bytes(),
            connect_max=arguments.timeout,
        ) as session:
            # At the end of the block every member has the message.
            with session.group(1) as group:
                if arguments.self == 0:
                    send(group, arguments.file)
                else:
                    receive(group, arguments.file)
    except KeyboardInterrupt:
        return 130
    except (prepost.Error, OSError) as error:
        print(f"broadcast.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
