"""Documents: typed results. The JSON contracts that command line, pages and REST share.

Enter by the module of a result. Never prints, never decides, never reads a file.
"""
