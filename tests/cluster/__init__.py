"""A proving ground: Amber twice over, behind the engines that operators run, all on 127.0.0.1.

`python -m tests.cluster up` starts it for people to look at; `make test-cluster` breaks it piece by piece
under load. What runs is configured by the files of `deploy/cluster`, as an installation would be.
"""
