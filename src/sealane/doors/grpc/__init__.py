"""The grpc door: the service of `swarmmq.proto`, for programs in any language. `door.py` is its front.

`swarmmq_pb2.py` and `swarmmq_pb2_grpc.py` are made from the `.proto` (`make proto`), and are what a client in Python
needs too.
"""
