#!/usr/bin/env bash
# An operator's session on a Kafka cluster, Apache Kafka or Kohort:
#     ./operator_session.sh HOST:PORT GROUP TOPIC
set -euo pipefail
export KOHORT_BOOTSTRAP=$1
group=$2 topic=$3

echo "# Which groups are there, and which are behind?"
kohort groups list
kohort groups lag

echo "# What does this group read, who is in it, and how far is it?"
kohort groups describe "$group" --verbose

echo "# Why did it rebalance?"
kohort groups rebalances "$group"

echo "# What would change if it started again from the beginning?"
kohort groups reset "$group" --topic "$topic" --to-earliest

echo "# Do it. The group must have no members."
kohort groups reset "$group" --topic "$topic" --to-earliest --execute
kohort groups offsets "$group"
