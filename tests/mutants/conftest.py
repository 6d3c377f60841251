"""Nothing here is a test."""

collect_ignore_glob = ["*"]
