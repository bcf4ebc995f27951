#!/bin/sh
# Ask an assistant with curl; needs a shell, curl and python3 (to read JSON).
#
#     AMBER_KEY=amb_live_… sh examples/ask.sh "What is 6 times 7?"
#
# The answer is printed as its events come. Each `id:` line is what Last-Event-ID takes to go on.
set -eu

url=${AMBER_URL:-http://127.0.0.1:8000}/api/v1
key=${AMBER_KEY:?put an API key into AMBER_KEY}
question=${1:?say what to ask}

amber() {
    curl --silent --show-error --fail-with-body --no-buffer \
        -H "Authorization: Bearer $key" -H 'Content-Type: application/json' "$@"
}

# The value at a path of the JSON on stdin: `pick results 0 id`.
pick() {
    python3 -c '
import json, sys
value = json.load(sys.stdin)
for step in sys.argv[1:]:
    value = value[int(step) if step.isdigit() else step]
print(value)' "$@"
}

# Amber's error, in its own words.
fail() {
    echo "$1" >&2
    exit 1
}

# Text as a JSON string.
quote() { python3 -c 'import json, sys; print(json.dumps(sys.argv[1]))' "$1"; }

assistants=$(amber "$url/assistants/?limit=1") || fail "$assistants"
assistant=$(echo "$assistants" | pick results 0 id)
made=$(amber "$url/chats/" -d "{\"assistant_id\": \"$assistant\"}") || fail "$made"
chat=$(echo "$made" | pick id)
amber "$url/chats/$chat/messages/" -H 'Accept: text/event-stream' \
    -d "{\"role\": \"human\", \"content\": $(quote "$question")}"
