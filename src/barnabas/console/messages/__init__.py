"""Reading, decoding, masking, filtering, downloading and sending the messages of a topic. Nothing here knows the web."""
