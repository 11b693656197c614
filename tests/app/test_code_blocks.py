from app.code_blocks import CodeBlock, code_blocks

TEXT = """Intro

```python title=x
def f():
    return 1
```

- item

  ~~~
  in a list
  ~~~

> ```sh
> ls
> ```

    indented

```js
open
"""


def test_every_block_without_its_marks():
    assert code_blocks(TEXT) == [
        CodeBlock("python", "def f():\n    return 1\n"),
        CodeBlock("", "in a list\n"),
        CodeBlock("sh", "ls\n"),
        CodeBlock("", "indented\n"),
        CodeBlock("js", "open\n"),
    ]


def test_no_block_and_the_first_line():
    assert code_blocks("`inline` only") == []
    assert CodeBlock("", "\n\n  x = 1\ny").first_line == "x = 1"
    assert CodeBlock("", "\n").first_line == ""
