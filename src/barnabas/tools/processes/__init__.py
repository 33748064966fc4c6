"""Several broker processes of one machine under one parent: `--processes` of `barnabas up` and `barnabas server`.

`resizing` makes the directories fit. `process_settings` and `process_plan` give each process its settings. `process_life` and `machine`
decide in plain objects, `parent` and `broker_process` act. `child` is the process of one broker; `messages` is what it and its parent send.
"""
