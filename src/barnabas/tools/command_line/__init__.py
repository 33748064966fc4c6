"""The command line of the tools: options, failures, exit codes, output."""
