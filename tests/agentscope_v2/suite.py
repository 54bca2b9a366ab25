"""AgentScope 2.x. Run by `test_agentscope_python.py`."""
def test_x(): pass
