"""DecDEC on a GPU: which channels of an input are corrected, and their residual rows read from host memory.

`selection` lists the channels (filled by `prepare`), `fetch` describes the rows and how they are read,
`fetch_kernel` reads them in the first programs of a product, `correction` reads them in a kernel of its own
and adds what was read; `reference` has the plain torch forms.
"""
