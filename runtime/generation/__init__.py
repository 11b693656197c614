"""From a conversation to a stream of events: context, prefix reuse, sampling, stopping, the slider."""
