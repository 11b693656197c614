"""Models, cache, quantisers, engine, tuner and worker process. Never imports the front end."""
