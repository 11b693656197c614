"""`python -m runtime.worker`: serve commands on stdin until it closes."""

from runtime.worker.main import main

if __name__ == "__main__":
    main()
