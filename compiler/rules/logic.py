"""Blocks of constraints and of deterministic expressions that are observed or discrete."""

from __future__ import annotations

import numpy as np

from ...factors.domains import boolean
from ...factors.errors import UnsupportedError
from ..algebra.known import known_in, latent_names
from ..algebra.linear import linear_form
from ..algebra.squares import square_of
from ..blocks.base import Block, Choice
from ..blocks.site import LinearForm, SiteBlock
from ..blocks.table import TruthTableBlock
from ..blocks.whole import ProductBlock
from ..graph import Draft
from ..language.atoms import powers
from ..language.monomials import expand
from ..language.nodes import Apply, Constant, Expr, Gather, IsData, Let, Random, applies, is_data
from ..language.operations import AND, GREATER, NOT
from ..methods import EP, Method
from .exact_observation import exact_observation, known_scales
from .maximum import maximum_block
from .slot_finder import discrete_key
from .slots import comparison_block

TRUE, FALSE = (Constant(np.array(truth), (), boolean) for truth in (True, False))


def ep_or_power(method: Method) -> Method:
    """Power EP where it was asked for, else EP."""
    return method if method.name == "power" else EP


def constraint_blocks(draft: Draft, name: str, expression: Expr) -> list[Block]:
    method = draft.method_of(name)
    expression = _strip_apply(expression)
    if known_in(draft)(expression):
        return []
    if applies(expression, AND):
        return [block for part in expression.args for block in constraint_blocks(draft, name, part)]
    if method.name in ("vmp", "ncvmp"):
        raise UnsupportedError(
            f"'{name}' is a constraint, whose divergence under VMP is infinite: "
            "a Gaussian belief puts mass where it fails. "
            f"Use method='auto', or EP for this factor: method={{'{name}': 'ep', ...}}."
        )
    if applies(expression, GREATER) and not _of_classes(expression):
        square = square_of(expression, known_in(draft))
        if square is not None and not square.outside:
            return [_boolean_block(draft, name, part, TRUE, method) for part in square.inside()]
    return [_boolean_block(draft, name, expression, TRUE, method)]


def _strip_apply(expr: Expr) -> Expr:
    return expr.expression if isinstance(expr, Let) and isinstance(expr.expression, Apply) else expr


def let_block(draft: Draft, node: Let) -> Block:
    method = draft.method_of(node.name)
    if node.domain.is_discrete:
        if method.name in ("vmp", "ncvmp"):
            raise UnsupportedError(
                f"'{node.name}' is a deterministic discrete expression; under VMP its divergence is infinite. "
                "Use method='auto' or 'ep' for it."
            )
        return _boolean_block(draft, node.name, node.expression, node, method)
    known = known_in(draft)
    form = linear_form(node.expression, known) if node.domain.is_real else None
    if form is None and (curve := _product_of_two(node.expression, known)) is not None:
        operator = "one integral along the curve, 241 stretched nodes"
        reason = "an exact observation of a product of two positive variables"
        coefficients, powers = curve
        return ProductBlock(
            name=node.name,
            plates=node.plates,
            latent=latent_names(draft, [node.expression]),
            choice=Choice(ep_or_power(method), operator, "quadrature", reason),
            out=node,
            coefficients=coefficients,
            powers=powers,
        )
    if form is None and (largest := maximum_block(draft, node, known)) is not None:
        return largest
    if form is None:
        raise UnsupportedError(
            f"'{node.name}' = {node.expression} is observed, and it is not a linear function of Gaussian variables: "
            "observing it exactly has no operator. "
            f"Observe it with noise: m.random('{node.name}', cv.gaussian({node.expression}, variance=small))."
        )
    operator, reason = "linear-Gaussian site, closed form", "an exact linear observation"
    block = SiteBlock(
        name=node.name,
        plates=node.plates,
        latent=latent_names(draft, [node.expression]),
        choice=Choice(ep_or_power(method), operator, "exact", reason),
        out=node,
        form=form,
    )
    one = len(form.terms) == 1 and known_scales(draft, [form.terms[0].variable])
    return exact_observation(block, node) if one else block


def _product_of_two(expr: Expr, known: IsData) -> tuple | None:
    """The data and the two positive variables, with exponents one or minus one, of which an expression is the product.

    None for anything else, and where the variables have not the plates of the expression.
    """
    parts = expand(expr, known)
    if len(parts) != 1 or not expr.domain.is_positive:
        return None
    bases = list(powers(parts[0][1]).values())
    fits = [isinstance(base, Random) and base.domain.is_positive and abs(n) == 1 for base, n in bases]
    same = [base.plates == expr.plates for base, _ in bases]
    return (parts[0][0], tuple(bases)) if len(bases) == 2 and all(fits) and all(same) else None


def _boolean_block(draft: Draft, name: str, expression: Expr, out: Expr, method: Method) -> Block:
    known = known_in(draft)
    expression = _strip_apply(expression)
    latent = latent_names(draft, [expression])
    plates = expression.plates
    observed = known(out) or out is TRUE
    if applies(expression, NOT) and observed and _compares_counts(inner := _strip_apply(expression.args[0])):
        return _boolean_block(draft, name, inner, FALSE if out is TRUE else ~out, method)
    if applies(expression, GREATER) and not _of_classes(expression):
        form = _form_of(expression, known)
        if form is None:
            return comparison_block(draft, name, expression, out, observed, method)
        reason = "a constraint or comparison: infinite divergence under VMP, exact moments under EP"
        return SiteBlock(
            name=name,
            plates=plates,
            latent=latent,
            choice=Choice(ep_or_power(method), "positivity site, closed form", "exact moments", reason),
            out=out,
            link="positive",
            form=form,
            atoms=() if observed else (out,),
        )
    atoms = discrete_atoms(expression, known)
    if len(atoms) > 12:
        raise UnsupportedError(
            f"'{name}' joins {len(atoms)} discrete variables in one expression; "
            f"its truth table would have 2^{len(atoms)} rows. Split it with m.let."
        )
    reason = "discrete states: EP is belief propagation"
    return TruthTableBlock(
        name=name,
        plates=plates,
        latent=latent,
        choice=Choice(ep_or_power(method), "sum-product over the truth table", "exact", reason),
        out=out,
        atoms=(*atoms, *(() if observed else (out,))),
        expression=expression,
    )


def _compares_counts(expression: Expr) -> bool:
    return applies(expression, GREATER) and all(arg.domain.is_count or is_data(arg) for arg in expression.args)


def _of_classes(expression: Apply) -> bool:
    return any(arg.domain.is_category for arg in expression.args)


def _form_of(comparison: Apply, known: IsData) -> LinearForm | None:
    """left - right of a comparison as a linear form, None where it is none."""
    try:
        return linear_form(comparison.args[0] - comparison.args[1], known)
    except UnsupportedError:  # a power of a variable, or atoms that depend on each other
        return None


def discrete_atoms(expression: Expr, known: IsData) -> tuple[Expr, ...]:
    """The random discrete variables that a discrete expression is made of; named expressions are atoms.

    An element chosen by a random index is made of the index and of all it may choose.
    """
    found: dict[tuple, Expr] = {}
    stack = [expression]
    while stack:
        node = stack.pop()
        if known(node):
            continue
        if isinstance(node, Apply) and (
            node.operation.logical
            or (node.operation.integer and (_of_classes(node) or node.domain.is_category))
            or (node.operation.aggregate and node.domain.is_discrete)
        ):
            stack.extend(reversed(node.args))
        elif isinstance(node, Gather) and not known(node.index):
            stack += [node.index, node.source]
        elif isinstance(node, (Random, Let, Gather)) and node.domain.is_discrete:
            found.setdefault(discrete_key(node), node)
        else:
            raise UnsupportedError(
                f"'{node}' inside '{expression}' is a comparison of random real numbers. "
                f"Name it first, c = m.let('c', {node}), and use c in the expression."
            )
    return tuple(found.values())
