"""What tests of Kafka programs use: `kohort.Node`, its helpers, and a pytest plugin."""
