#!/bin/sh
# SPDX-License-Identifier: MIT
# An executor in shell: the spec comes as an argument, the answer is the last line of stdout.
#
#   app.command("count_words", ["examples/executors/count-words.sh"], payload="argv")
#   count_words.enqueue("to be or not to be")
set -eu
# --task-path NAME --payload-json SPEC
text=$(printf '%s' "$4" | sed -n 's/.*"args":\["\([^"]*\)".*/\1/p')
echo "counting for $2, attempt $BYROTE_ATTEMPT"
count=$(printf '%s' "$text" | wc -w)
printf '{"ok": true, "result": %d}\n' "$count"
