# SPDX-License-Identifier: MIT
"""An executor that takes `--payload` and prints its bare result, without any envelope.

app.command("process", ["python", "examples/executors/payload.py"], payload="argv-payload")
"""

import argparse
import json


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payload", required=True)
    args = parser.parse_args()

    payload = json.loads(args.payload)
    result = {"status": "ok", "data": f"processed {payload['args']}"}

    print(json.dumps(result))


if __name__ == "__main__":
    main()
