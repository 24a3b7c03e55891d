"""Volcano: batch scheduling with gangs, queues and fair shares."""
