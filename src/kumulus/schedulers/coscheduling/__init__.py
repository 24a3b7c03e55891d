"""Coscheduling: kube-scheduler with scheduler-plugins' gangs."""
