"""What Sealane's client processes do, by kind; `bench.wire_client` runs one of them."""
