"""The derivatives of ONNX operators, with a module for each family of operators.

Importing this package imports these modules, which fill the table in ``registry``. A rule turns
``dy``, the gradient at the result, into gradients at the inputs: for d(sin x) = cos x dx, the rule
returns dy · cos x.
"""

import pkgutil
from importlib import import_module

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
