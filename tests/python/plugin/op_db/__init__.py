"""Every operator of PyTorch's own list (op_db), plain and inside a budget: the same bits.

    python -m op_db add mul --dtype float32 --sample 3 --variant inplace
    python -m op_db report

runs what the tests run; see __main__.py.
"""
