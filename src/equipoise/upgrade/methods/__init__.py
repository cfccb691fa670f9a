"""Methods: how the resources of an upgrade unit are taken through a change.

Entry points: ``make_unit`` (method and partitions), ``switchings_of`` (what is switched off and on
when), ``protection_shortfall`` (what that costs). A unit always has the same partitions, whatever
the state of an upgrade is.
"""
